"""The seed pool: templates, the scripted teacher, building, schemas and text measures."""
