"""A member of the store: the Raft node, its log on disk and the state machine that the log drives, as one ``api.KV``."""
