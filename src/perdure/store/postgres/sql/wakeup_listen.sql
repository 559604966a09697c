-- Hear what other processes announce.
LISTEN perdure
