import {
  Controller,
  createParamDecorator,
  type ExecutionContext,
  Get,
  Headers,
  Query,
  Req,
  Scope,
  UsePipes,
} from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { bothForms } from './applications.js';

const Agent = createParamDecorator((name: string, context: ExecutionContext) => {
  const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
  return `${name} ${headers['user-agent']}`;
});
const Handler = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    `${context.getClass().name}.${context.getHandler().name}/${context.getHandler().length}`,
);
class Shout {
  transform(value: unknown) {
    return typeof value === 'string' ? value.toUpperCase() : value;
  }
}

@Controller('parameters')
class ParametersController {
  @Get('custom')
  custom(@Agent('by') agent: string, @Handler() handler: string, @Headers('x-one') one?: string) {
    return { agent, handler, one, parameters: arguments.length };
  }
  @Get('piped')
  @UsePipes(Shout)
  piped(@Query('q') q: string, @Agent('by') agent: string) {
    return { q, agent, parameters: arguments.length };
  }
  @Get('rest')
  rest(...rest: unknown[]) {
    return { rest: rest.length };
  }
  @Get('default')
  withDefault(first = 'default', second: unknown = 'second') {
    return { first, second, parameters: arguments.length };
  }
  @Get('last')
  last(@Query('q') q: string, @Req() request: { url: string }) {
    return { q, url: request.url, parameters: arguments.length };
  }
  /** The first has no decorator. */
  @Get('gap')
  gap(first: unknown, @Query('q') q: string) {
    return { first: first === undefined, q, parameters: arguments.length };
  }
  @Get('called')
  called() {
    return this.callee('by the handler');
  }
  @Get('callee')
  callee(by = 'by Nest') {
    return { by, parameters: arguments.length };
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedParametersController extends ParametersController {}

const ofParameters: [string, unknown][] = [
  ['piped?q=quiet', { q: 'QUIET', agent: 'BY TEST', parameters: 2 }],
  ['rest', { rest: 0 }],
  ['last?q=a', { q: 'a', parameters: 2 }],
  ['gap?q=a', { first: true, q: 'a', parameters: 2 }],
  ['called', { by: 'by the handler', parameters: 1 }],
];

describe.each(acrossNests('express'))('handlers on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, () => ({ controllers: [ParametersController, ScopedParametersController] }));

  describe.each(['parameters', 'scoped'])('of the kind "%s"', (kind) => {
    it.each(ofParameters)(`%s has the parameters of its declaration`, async (path, body) => {
      expect(await json(`/${kind}/${path}`, { headers: { 'user-agent': 'test' } })).toMatchObject(body as object);
    });

    it('give custom parameter decorators the class and the method', async () => {
      const controller = kind === 'scoped' ? 'ScopedParametersController' : 'ParametersController';
      expect(await json(`/${kind}/custom`, { headers: { 'user-agent': 'test', 'x-one': '1' } })).toEqual({
        agent: 'by test',
        handler: `${controller}.custom/3`,
        one: '1',
        parameters: 3,
      });
    });

    it('give a method without decorated parameters what Nest gives it', async () => {
      await ask(`/${kind}/default`);
      await ask(`/${kind}/callee`);
    });
  });
});
