"""Whether requests fit into the ResourceQuotas of their namespace; what objects use is counted by ``machinery.quota``."""
