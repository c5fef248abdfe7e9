"""The seed pool: templates, the scripted expert, building, schemas and text measures."""
