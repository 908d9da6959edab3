"""Ilion, a Cassandra-compatible column-family store: a node as a child process, and where its program is."""

from ilion.node import Node, StartError
from ilion.program import program

__all__ = ["Node", "StartError", "program"]
