"""Stores answers, so that no request is sent twice.

*store* is the SQLite file of a run, committed batch by batch, or of a cache that runs share::

    models      one row; in a cache, one for each model
    responses   key (model, request; facts and adapter where they matter), request, response
    heads       beginnings that many prompts share, such as an instruction with its examples
    usage       attempts, seconds and cost, a row per batch sent or stored; a result holds their sums
    runtimes    devices, packages and settings with which the answers were computed
    choices     what a backend found out by trying, such as how it scores options
"""
