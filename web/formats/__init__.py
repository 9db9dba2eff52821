"""How languages write dates and numbers, where Larder differs from Django."""
