"""Plots by matplotlib."""
