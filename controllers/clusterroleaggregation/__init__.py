"""Keeps the rules of cluster roles that gather those of others (``aggregationRule``): admin, edit and view among them."""
