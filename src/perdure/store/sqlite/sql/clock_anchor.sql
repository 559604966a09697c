-- Anchor the store's time to this start of the machine.
INSERT INTO perdure_meta (key, value) VALUES ('boot_id', :boot_id), ('offset_us', :offset_us), ('last_us', :now)
ON CONFLICT (key) DO UPDATE SET value = excluded.value
