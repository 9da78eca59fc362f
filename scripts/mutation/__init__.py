"""Mutation testing: does a test fail when the code is made wrong?"""
