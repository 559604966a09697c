-- The tables, their columns and what these hold.
SELECT columns.table_name::text, columns.column_name::text, columns.data_type::text
FROM information_schema.columns AS columns
JOIN information_schema.tables AS tables USING (table_schema, table_name)
WHERE columns.table_schema = current_schema() AND starts_with(columns.table_name::text, 'perdure_')
AND tables.table_type = 'BASE TABLE'
