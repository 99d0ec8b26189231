"""What a request is about, found once at the door and carried in the ASGI scope under ``scope["sampan"]``."""
