import { Injectable, type Type } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Query, ResolveField, Resolver } from '@nestjs/graphql';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { expect, it } from 'vitest';
import type { Frame } from '../../../src/event-loop/frame.js';
import { ProviderMethods } from '../../../src/event-loop/provider-methods.js';

function Traced(_target: object, _name: string, descriptor: PropertyDescriptor): void {
  const method = descriptor.value as () => unknown;
  descriptor.value = function (this: unknown) {
    return method.apply(this);
  };
}

@Injectable()
class Reports {
  async render() {}
  @Traced async traced(): Promise<void> {}
  @Traced tracedText(): string {
    return '';
  }
  text() {}
  async *rows() {}
}

@WebSocketGateway()
class ReportsGateway {
  @SubscribeMessage('render') async message() {}
  async handleConnection() {}
  async load() {}
}

@Resolver('Report')
class ReportsResolver {
  @Query(() => String) async report() {}
  @ResolveField(() => String) async field() {}
}

@Processor('reports')
class ReportsProcessor extends WorkerHost {
  async process() {}
  @OnWorkerEvent('completed') async completed() {}
  async load() {}
}

@Injectable()
class Pipeline {
  async process() {}
}

const providers: Type[] = [Reports, ReportsGateway, ReportsResolver, ReportsProcessor, Pipeline];
const frameOf = (place: string): Frame => {
  const [typeName, name] = place.split('.') as [string, string];
  return { name, typeName, file: '/app/main.js', line: 1, column: 1, functionLine: 1, async: false };
};

it.each([
  ['an async method', ['Reports.render'], 'Reports.render'],
  ['one that a decorator wraps', ['Reports.traced'], 'Reports.traced'],
  ['none that returns no promise', ['Reports.text'], null],
  ['none that returns no promise and is wrapped', ['Reports.tracedText'], null],
  ['none that generates', ['Reports.rows'], null],
  ['none that handles messages', ['ReportsGateway.message'], null],
  ['none that gets a socket', ['ReportsGateway.handleConnection'], null],
  ['none that handles a query', ['ReportsResolver.report'], null],
  ['none that resolves a field', ['ReportsResolver.field'], null],
  ['none that gets a job', ['ReportsProcessor.process'], null],
  ['none that hears of a job', ['ReportsProcessor.completed'], null],
  ['one of a class with handlers', ['ReportsProcessor.load', 'ReportsProcessor.process'], 'ReportsProcessor.load'],
  ['one that only has the name of a handler', ['Pipeline.process'], 'Pipeline.process'],
  ['the next one inside of a handler', ['Reports.text', 'Reports.render', 'ReportsGateway.message'], 'Reports.render'],
  ['the outermost', ['Reports.render', 'ReportsGateway.load'], 'ReportsGateway.load'],
])('names %s', async (_what, stack, expected) => {
  const app = await NestFactory.createApplicationContext({ module: class {}, providers }, { logger: false });
  const methods = new ProviderMethods(app.get(ModulesContainer));
  expect(methods.runningIn(stack.map(frameOf), () => true)).toBe(expected);
  await app.close();
});
