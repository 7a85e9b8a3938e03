import type { INestApplication } from '@nestjs/common';
import type { RequestRecord } from 'nestjs-perf';
import { settle } from 'nestjs-perf/testing';
import { records } from './app.module.js';

/** The requests of one stretch of time after the other. */
export class RequestsSince {
  constructor(private readonly app: INestApplication) {}

  async take(): Promise<RequestRecord[]> {
    await settle(this.app);
    return records.records.splice(0).filter((record) => record.kind === 'request');
  }
}
