"""The same requests to a real kube-apiserver and to ours, and the answers side by side.

``requests.py`` holds what is asked, ``recorded-1.20.json`` what a real server answered, ``differences.py`` where ours is meant to answer
otherwise and why, ``test_answers.py`` asks ours.

    python -m tests.differential record https://127.0.0.1:16443 TOKEN recorded-1.20.json    ask a real server and keep its answers
    python -m tests.differential compare https://127.0.0.1:6443 TOKEN                       ask any server, print what differs
    python -m tests.differential accept https://127.0.0.1:6443 TOKEN                        keep ours where they are meant to differ

Recording changes the server (a namespace, some objects). Requests are written to the connection byte by byte as they stand here, since
many of them are ones that no HTTP library would send.
"""
