"""Starts the Jobs of CronJobs (``pkg/controller/cronjob``).

A Job is named after the CronJob and the minute it was due, so a moment never makes two, also across restarts. Of moments that were missed
only the latest is made up for, and only within ``startingDeadlineSeconds``.

    schedule      when: five fields, @hourly and the like, @every, in a time zone ◇
    decision      what is running, due, superfluous; the Job of a moment ◇
    controller    reads, carries out, writes
"""
