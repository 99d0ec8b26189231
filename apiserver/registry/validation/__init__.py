"""What Kubernetes checks of built-in kinds beyond their schemas, in its order and with its words.

Every ``validate_*`` function appends to the list of errors that it is given first and changes nothing else. A path is a string;
longer ones are put together only where an error is found or a list is entered, since nearly all objects are right. Objects have
passed decoding: values have their schema's types, and a missing field, null and the zero value of its type mean the same.
"""
