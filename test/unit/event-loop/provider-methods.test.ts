import { type CanActivate, Controller, Get, Injectable, Module, UseGuards, type NestMiddleware } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import { Processor, WorkerHost } from '@nestjs/bullmq';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ProviderMethods } from '../../../src/event-loop/provider-methods.js';
import { frame } from '../../fixtures/samples.js';

@Injectable()
class Rows {
  hydrate() {}
  get size() {
    throw new Error('an accessor was called');
  }
}
@Injectable()
class Reports extends Rows {
  async render() {}
}
@Processor('reports')
class ReportsProcessor extends WorkerHost {
  async process() {}
}
@Injectable()
class OnlyAdmins implements CanActivate {
  canActivate() {
    return true;
  }
}
@Injectable()
class Audit implements NestMiddleware {
  use() {}
}
@Controller()
@UseGuards(OnlyAdmins)
class ReportsController {
  @Get() list() {}
}
class Unknown {
  render() {}
}
void Unknown;

@Module({ controllers: [ReportsController], providers: [Rows, Reports, ReportsProcessor, Audit] })
class ReportsModule {}

let methods: ProviderMethods;
let close: () => Promise<void>;
beforeAll(async () => {
  const app = await NestFactory.createApplicationContext(ReportsModule, { logger: false });
  methods = new ProviderMethods(app.get(ModulesContainer));
  close = () => app.close();
});
afterAll(() => close());

const framesOf = (stack: readonly string[]) =>
  stack.map((place) => {
    const [typeName, name] = place.split('.') as [string, string];
    return frame(name, '/app/main.js', { typeName });
  });

it.each([
  ['a controller’s', ['ReportsController.list'], 'ReportsController.list'],
  ['the innermost', ['Rows.hydrate', 'Reports.render', 'ReportsController.list'], 'Rows.hydrate'],
  ['one that is inherited', ['Reports.hydrate'], 'Reports.hydrate'],
  ['a consumer’s', ['ReportsProcessor.process'], 'ReportsProcessor.process'],
  ['a guard’s', ['OnlyAdmins.canActivate'], 'OnlyAdmins.canActivate'],
  ['a middleware’s', ['Audit.use'], 'Audit.use'],
  ['none of a class that Nest does not make', ['Unknown.render', 'Reports.render'], 'Reports.render'],
  ['no function that is no method', ['Reports.sum'], null],
  ['no accessor', ['Rows.size'], null],
  ['no constructor', ['Rows.constructor'], null],
])('names %s', (_what, stack, expected) => {
  expect(methods.findIn(framesOf(stack), () => true)).toBe(expected);
});

it('names none in a dependency', () => {
  expect(methods.findIn(framesOf(['Reports.render']), () => false)).toBeNull();
});
