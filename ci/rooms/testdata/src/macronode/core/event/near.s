// no text
