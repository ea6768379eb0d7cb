"""The generator of the site: views of tables and models, charts, exports and pages."""
