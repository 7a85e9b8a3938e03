// GraphQL over HTTP with a real driver: nothing breaks, one record for each HTTP request, resolvers measured for who asks.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Module, NotFoundException, UseInterceptors } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import { MercuriusDriver, type MercuriusDriverConfig } from '@nestjs/mercurius';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfInterceptor, PerfModule, PerfService, type RequestRecord, type WorkRecord } from 'nestjs-perf';
import { memorySink, settle } from 'nestjs-perf/testing';

@Resolver()
class UsersResolver {
  constructor(private readonly perf: PerfService) {}

  @Query('plain')
  plain(): string {
    return 'not measured by itself';
  }

  @Query('user')
  @UseInterceptors(PerfInterceptor)
  async user(@Args('id') id: number): Promise<string> {
    await this.perf.timed(`user ${id}`, () => delay(20 - id));
    return `user ${id}`;
  }

  @Mutation('remove')
  @UseInterceptors(PerfInterceptor)
  remove(): string {
    throw new NotFoundException('no such user');
  }
}

const sink = memorySink();

@Module({
  imports: [
    PerfModule.forRoot({ sinks: [sink] }),
    GraphQLModule.forRoot<MercuriusDriverConfig>({
      driver: MercuriusDriver,
      typeDefs: 'type Query { plain: String user(id: Int): String } type Mutation { remove: String }',
    }),
  ],
  providers: [UsersResolver],
})
class AppModule {}

const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
const url = `${await app.getUrl()}/graphql`;

async function ask(query: string): Promise<{ data: Record<string, unknown> | null; errors?: { message: string }[] }> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ query }) });
  return (await response.json()) as Awaited<ReturnType<typeof ask>>;
}

assert.deepEqual(await ask('{ plain }'), { data: { plain: 'not measured by itself' } });
const ids = Array.from({ length: 10 }, (_, index) => index + 1);
// Two fields in each operation, all operations at once: what each resolver calls must stay with it.
const answers = await Promise.all(ids.map((id) => ask(`{ first: user(id: ${id}) second: user(id: ${id + 10}) }`)));
for (const [index, { data }] of answers.entries()) {
  assert.deepEqual(data, { first: `user ${index + 1}`, second: `user ${index + 11}` });
}
const failed = await ask('mutation { remove }');
assert.equal(failed.errors?.[0]?.message, 'no such user');

await settle(app);
const requests = sink.records.filter((record): record is RequestRecord => record.kind === 'request');
const over = (method: string): RequestRecord[] => requests.filter((record) => record.method === method);

assert.equal(over('POST').length, 12, 'one record for each HTTP request');
assert.ok(over('POST').every(({ route }) => route === '/graphql'));

const works = sink.records.filter((record): record is WorkRecord => record.kind === 'work');
const measured = works.map(({ type, name, outcome, upstream }) => [type, name, outcome, upstream?.[0]?.target ?? null]);
assert.deepEqual(
  measured.map(String).toSorted(),
  [
    'graphql,UsersResolver.remove,failed,',
    ...ids.concat(ids.map((id) => id + 10)).map((id) => `graphql,UsersResolver.user,completed,user ${id}`),
  ].toSorted(),
);
await app.close();
console.log('12 HTTP requests, 21 measured resolvers');
