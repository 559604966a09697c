-- Give a task the options that its other payload makes: its unique key, its gates.
UPDATE perdure_tasks AS tasks SET options = %(options)s::json WHERE n = %(n)s::bigint
