"""Durable state behind protocols of domain verbs, one file each. Only the engine calls a store."""
