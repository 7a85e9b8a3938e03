import { describe, expect, it } from 'vitest';
import { isServerTrouble } from '../../../../src/defer/outbox/server-trouble.js';

/** As ioredis and BullMQ hand on what Redis 6.2 and 7 answer. */
const OF_THE_SERVER = [
  "READONLY You can't write against a read only replica. script: 43cbca, on @user_script:1.",
  "ERR Error running script (call to f_43cbca): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
  "OOM command not allowed when used memory > 'maxmemory'. script: 43cbca, on @user_script:1.",
  "ERR Error running script (call to f_43cbca): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
  'MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.',
  'ERR Error running script (call to f_43cbca): @user_script:1: @user_script: 1: -MISCONF Errors writing to the AOF file: No space left on device',
  'NOSCRIPT No matching script. Please use EVAL.',
  "NOPERM User mail has no permissions to run the 'evalsha' command",
  "ERR Error running script (call to f_43cbca): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand",
  'LOADING Redis is loading the dataset in memory',
  'NOAUTH Authentication required.',
  'MOVED 3999 127.0.0.1:6381',
  "CROSSSLOT Keys in request don't hash to the same slot",
  'MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no.',
  'CLUSTERDOWN The cluster is down',
  'NOREPLICAS Not enough good replicas to write.',
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  'ERR max number of clients reached',
  'Connection is closed.',
  "Stream isn't writeable and enableOfflineQueue options is false",
  "Cluster isn't ready and enableOfflineQueue options is false",
  'Too many Cluster redirections. Last error: Error: Connection is closed.',
  'None of startup nodes is available',
];
const OF_THE_JOB = [
  'The size of job report exceeds the limit 10 bytes',
  'Custom Id cannot contain :',
  'ERR wrong number of arguments for this command',
  'Missing lock for job 12. moveToFinished',
  'the MOVED jobs are BUSY',
  "Cannot read properties of undefined (reading 'id')",
];

describe('an error of a store', () => {
  it.each(OF_THE_SERVER)('speaks of the server: %s', (message) => {
    expect(isServerTrouble(new Error(message))).toBe(true);
  });

  it.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN'])(
    'speaks of the connection: %s',
    (code) => {
      expect(isServerTrouble(Object.assign(new Error('no'), { code }))).toBe(true);
    },
  );

  it.each(OF_THE_JOB)('speaks of the job: %s', (message) => {
    expect(isServerTrouble(new Error(message))).toBe(false);
  });
});
