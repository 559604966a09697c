-- Give a task the options that its other payload makes: its unique key, its gates.
UPDATE perdure_tasks AS tasks SET options = :options WHERE n = :n
