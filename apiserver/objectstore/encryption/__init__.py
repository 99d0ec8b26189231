"""Encryption at rest (``--encryption-provider-config``, EncryptionConfiguration v1), in the forms that kube-apiserver stores.

    k8s:enc:aesgcm:v1:KEY:     12 bytes of nonce, ciphertext, 16 bytes of tag; the key in the store is authenticated with it
    k8s:enc:aescbc:v1:KEY:     16 bytes of initial vector, ciphertext with PKCS #7 padding
    k8s:enc:secretbox:v1:KEY:  24 bytes of nonce, box
    k8s:enc:kms:v2:NAME:       an EncryptedObject (``kms``): what is encrypted by a key derived from a seed that the plugin has encrypted

The first provider of a resource writes, each of them reads. What another one than the first has written is *stale*: an update that
changes nothing writes it all the same, so that ``kubectl get … -o json | kubectl replace -f -`` moves everything to a new key.

An encrypted object is in the log, in the database and on its way between members in its encrypted form; the watch cache and what is
served from it have it in the clear. So these objects exist in two forms where others exist in one, and cost an encryption for each write
and a decryption for each version that arrives (aesgcm of 2 KB: a few µs each). Nothing of this is loaded or asked where no configuration
is given.

    configuration ◇  the file, checked
    providers ◇      one cipher each
    transformer ◇    the providers of a resource
    kms              the plugin over its socket: keys, health
    encryption       which resource has which transformer; reload
"""
