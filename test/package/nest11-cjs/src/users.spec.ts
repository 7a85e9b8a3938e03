// What the Nest 11 starter's Jest runs: CommonJS through ts-jest, nothing configured for this package.
import 'reflect-metadata';
import { Controller, Get, Param, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { PerfModule, PerfService, type RequestRecord } from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';

@Controller('users')
class UsersController {
  constructor(private readonly perf: PerfService) {}

  @Get(':id')
  findOne(@Param('id') id: string): { id: string; routes: number } {
    return { id, routes: this.perf.snapshot().routes.length };
  }
}

/** Jest's five seconds are too few for a first start on a slow machine. */
const LIMIT_MS = 60_000;

describe('an application under test', () => {
  const sink = memorySink();
  let app: INestApplication;

  beforeAll(async () => {
    const testing = await Test.createTestingModule({
      imports: [PerfModule.forRoot({ sinks: [sink] })],
      controllers: [UsersController],
    }).compile();
    app = testing.createNestApplication();
    await app.listen(0, '127.0.0.1');
  }, LIMIT_MS);
  afterAll(() => app.close(), LIMIT_MS);

  it(
    'has its requests recorded',
    async () => {
      const response = await fetch(`${await app.getUrl()}/users/7`);
      expect(response.status).toBe(200);
      await settle(app);
      const records = sink.records.filter((record): record is RequestRecord => record.kind === 'request');
      expect(records.map(({ route, handler, status }) => [route, handler, status])).toEqual([
        ['/users/:id', 'UsersController.findOne', 200],
      ]);
    },
    LIMIT_MS,
  );
});
