import { Controller, Get, Inject, Injectable, Param, Post, type OnApplicationShutdown } from '@nestjs/common';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import type { Queue } from 'bullmq';
import { expect, it } from 'vitest';
import { Deferrer, type JobQueue } from '../../../src/index.js';
import { settle } from '../../../src/entries/testing.js';
import { connection, queueName, queueNamed } from '../../fixtures/redis.js';
import { startDeferring } from '../../fixtures/works.js';

type Added = Parameters<JobQueue['addBulk']>[0];
const QUEUE = 'the queue that the controller adds to';

@Controller('mail')
class MailController {
  constructor(
    @Inject(Deferrer) private readonly deferrer: Deferrer,
    @Inject(QUEUE) private readonly queue: JobQueue,
  ) {}
  @Post(':id')
  send(@Param('id') id: string) {
    const data = { id, late: false };
    this.deferrer.addJob(this.queue, 'welcome', data, { priority: 2 });
    data.late = true;
    if (id === 'bad') throw new Error('after arming');
    return { id };
  }
  @Get('circular')
  circular() {
    const data: Record<string, unknown> = {};
    data['self'] = data;
    try {
      this.deferrer.addJob(this.queue, 'welcome', data);
    } catch (error) {
      return { message: (error as Error).message };
    }
    return {};
  }
}

async function start() {
  const bulks: Added[] = [];
  const queue: JobQueue = { name: 'mail', addBulk: (jobs) => (bulks.push(jobs), Promise.resolve(jobs)) };
  const providers = [{ provide: QUEUE, useValue: queue }];
  return { ...(await startDeferring('fastify', { controllers: [MailController], providers })), bulks };
}

it('adds after the response, in few bulks, with own ids, the data as it was, and the options given', async () => {
  const { url, bulks, deferrer } = await start();
  await Promise.all(Array.from({ length: 60 }, (_, i) => fetch(`${url}/mail/${i}`, { method: 'POST' })));
  await deferrer.idle();
  const jobs = bulks.flat() as { data: unknown; opts: { jobId: string; priority: number } }[];
  expect(jobs).toHaveLength(60);
  expect(bulks.length).toBeLessThan(60);
  expect(new Set(jobs.map(({ opts }) => opts.jobId)).size).toBe(60);
  expect(jobs.every(({ opts, data }) => opts.priority === 2 && !(data as { late: boolean }).late)).toBe(true);
  expect(deferrer.stats()).toMatchObject({ accepted: 60, completed: 60, stored: 60, buffered: 0 });
});

it('adds nothing for a request that failed, and says at once that data is no JSON', async () => {
  const { app, url, bulks, deferrer } = await start();
  expect((await fetch(`${url}/mail/bad`, { method: 'POST' })).status).toBe(500);
  expect(await (await fetch(`${url}/mail/circular`)).json()).toEqual({
    message: expect.stringMatching(/^PERF_ERR_SERIALIZE: the data of job "welcome" for queue "mail"/) as string,
  });
  await settle(app);
  expect(bulks).toEqual([]);
  expect(deferrer.stats().accepted).toBe(0);
});

it('says at once that a job has no name', async () => {
  const { app } = await start();
  expect(() => app.get(Deferrer).addJob({ name: 'mail', addBulk: async () => [] }, '', {})).toThrow(
    'PERF_ERR_OPTION: `deferrer.addJob() name` must be the name of a job, got `""` (string).',
  );
});

it('hands over every job of @nestjs/bullmq’s own queue before that queue is closed, also when it closes fast', async () => {
  const name = queueName();
  const order: string[] = [];
  @Injectable()
  class Database implements OnApplicationShutdown {
    onApplicationShutdown(): void {
      order.push('database closes');
    }
  }
  const metadata = {
    imports: [BullModule.forRoot({ connection }), BullModule.registerQueue({ name })],
    controllers: [MailController],
    providers: [Database, { provide: QUEUE, useExisting: getQueueToken(name) }],
  };
  const { app, url, close, deferrer } = await startDeferring('fastify', metadata, {
    batch: { maxWaitMs: 500, maxJobs: 1_000 },
  });
  await app.get<Queue>(getQueueToken(name)).waitUntilReady();
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, i) => fetch(`${url}/mail/${i}`, { method: 'POST' })),
  );
  expect(answers.every(({ status }) => status === 201)).toBe(true);
  deferrer.defer(async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    order.push('task');
  });
  await close();
  expect(order).toEqual(['task', 'database closes']);
  // All have a priority.
  expect(await queueNamed(name).getJobCountByTypes('prioritized')).toBe(100);
});
