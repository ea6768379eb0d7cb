"""The pages: views of tables and models, charts, exports, and the site that they make up."""
