import {
  type ArgumentsHost,
  BadRequestException,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  ForbiddenException,
  Get,
  HttpException,
  Injectable,
  type NestInterceptor,
  Param,
  ParseIntPipe,
  type PipeTransform,
  Post,
  Body,
  Scope,
  UnauthorizedException,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter, HttpAdapterHost } from '@nestjs/core';
import { catchError, map, of, type OperatorFunction, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { bothForms } from './applications.js';

interface Reply {
  status(code: number): { send(body: unknown): void };
}
const reply = (host: ArgumentsHost, status: number, by: string, error: unknown): void =>
  host
    .switchToHttp()
    .getResponse<Reply>()
    .status(status)
    .send({ by, message: error instanceof Error ? error.message : String(error) });

class TeapotError extends Error {}
class NeverThought extends Error {}

@Catch(TeapotError)
class TeapotFilter implements ExceptionFilter {
  catch(error: TeapotError, host: ArgumentsHost) {
    reply(host, 418, `method of ${(host as ExecutionContext).getType()}`, error);
  }
}
@Catch(ForbiddenException, TeapotError)
class ControllerFilter implements ExceptionFilter {
  async catch(error: Error, host: ArgumentsHost) {
    await new Promise((resolve) => setImmediate(resolve));
    reply(host, 451, 'controller', error);
  }
}
@Catch(UnauthorizedException)
class GlobalFilter implements ExceptionFilter {
  catch(error: Error, host: ArgumentsHost) {
    reply(host, 499, 'global', error);
  }
}
@Injectable({ scope: Scope.REQUEST })
@Catch(BadRequestException)
class ScopedFilter implements ExceptionFilter {
  catch(error: Error, host: ArgumentsHost) {
    reply(host, 422, 'scoped', error);
  }
}
@Catch()
class CatchAll extends BaseExceptionFilter {
  constructor(host: HttpAdapterHost) {
    super(host.httpAdapter);
  }
  override catch(error: unknown, host: ArgumentsHost) {
    if (error instanceof NeverThought) reply(host, 530, 'catch-all', error);
    // eslint-disable-next-line promise/no-promise-in-callback, promise/valid-params -- no promise
    else super.catch(error, host);
  }
}

const throwing = (message: string) => (): never => {
  throw new TeapotError(message);
};
const refusedWith = (error: Error) => ({
  canActivate: (): never => {
    throw error;
  },
});
const refusing = { canActivate: async () => false };
const brokenPipe: PipeTransform = { transform: throwing('the pipe throws') };
const broken: NestInterceptor = { intercept: throwing('the interceptor throws') };
/** Around what the handler answers. */
const around = (change: OperatorFunction<unknown, unknown>): NestInterceptor => ({
  intercept: (_context, next) => next.handle().pipe(change),
});
const brokenLate = around(map(throwing('the interceptor throws late')));
const mapping = around(
  catchError((error: Error) => throwError(() => new HttpException(`mapped: ${error.message}`, 409))),
);
const recovering = around(catchError((error: Error) => of({ recovered: error.message })));

@Controller('errors')
@UseFilters(ControllerFilter)
class ErrorsController {
  @Get('http')
  http() {
    throw new HttpException('plain', 400);
  }
  @Get('object')
  async object() {
    throw new HttpException({ code: 'E_OWN', details: [1] }, 409);
  }
  @Get('cause')
  cause() {
    throw new BadRequestException('told', { cause: new Error('hidden'), description: 'why' });
  }
  @Get('unknown')
  unknown() {
    throw new Error('secret');
  }
  @Get('string')
  async string() {
    // eslint-disable-next-line no-throw-literal, typescript/only-throw-error -- what applications do
    throw 'a string';
  }
  @Get('status-code')
  statusCode() {
    throw Object.assign(new Error('like http-errors'), { statusCode: 416 });
  }
  @Get('method')
  @UseFilters(TeapotFilter)
  method() {
    throw new TeapotError('short and stout');
  }
  @Get('controller')
  async controller() {
    throw new TeapotError('of the controller');
  }
  @Get('global')
  global() {
    throw new UnauthorizedException('who');
  }
  @Get('catch-all')
  catchAll() {
    throw new NeverThought('of');
  }
  @Get('scoped')
  @UseFilters(ScopedFilter)
  scoped() {
    throw new BadRequestException('of a scope');
  }
  @Get('guard/throws')
  @UseGuards(refusedWith(new UnauthorizedException('the guard throws')))
  guardThrows() {}
  @Get('guard/refuses')
  @UseGuards(refusing)
  guardRefuses() {}
  @Get('pipe/:id')
  pipe(@Param('id', ParseIntPipe) id: number) {
    return { id };
  }
  @Get('own-pipe/:id')
  ownPipe(@Param('id', brokenPipe) id: unknown) {
    return { id };
  }
  @Get('interceptor/throws')
  @UseInterceptors(broken)
  interceptorThrows() {}
  @Get('interceptor/late')
  @UseInterceptors(brokenLate)
  interceptorLate() {}
  @Get('interceptor/maps')
  @UseInterceptors(mapping)
  interceptorMaps() {
    throw new Error('original');
  }
  @Get('interceptor/recovers')
  @UseInterceptors(recovering)
  async interceptorRecovers() {
    throw new Error('forgiven');
  }
  @Post('body')
  body(@Body() body: unknown) {
    return { body };
  }
}

const application = () => ({
  controllers: [ErrorsController],
  providers: [
    { provide: APP_FILTER, useClass: CatchAll },
    { provide: APP_FILTER, useClass: GlobalFilter },
  ],
});

const expected: [string, number, unknown][] = [
  ['http', 400, { statusCode: 400, message: 'plain' }],
  ['object', 409, { code: 'E_OWN', details: [1] }],
  ['cause', 400, { statusCode: 400, message: 'told', error: 'why' }],
  ['unknown', 500, { statusCode: 500, message: 'Internal server error' }],
  ['string', 500, { statusCode: 500, message: 'Internal server error' }],
  ['method', 418, { by: 'method of http', message: 'short and stout' }],
  ['controller', 451, { by: 'controller', message: 'of the controller' }],
  ['global', 499, { by: 'global', message: 'who' }],
  ['catch-all', 530, { by: 'catch-all', message: 'of' }],
  ['scoped', 422, { by: 'scoped', message: 'of a scope' }],
  ['guard/throws', 499, { by: 'global', message: 'the guard throws' }],
  ['guard/refuses', 451, { by: 'controller', message: 'Forbidden resource' }],
  ['pipe/7', 200, { id: 7 }],
  [
    'pipe/seven',
    400,
    { statusCode: 400, error: 'Bad Request', message: 'Validation failed (numeric string is expected)' },
  ],
  ['own-pipe/7', 451, { by: 'controller', message: 'the pipe throws' }],
  ['interceptor/throws', 451, { by: 'controller', message: 'the interceptor throws' }],
  ['interceptor/late', 451, { by: 'controller', message: 'the interceptor throws late' }],
  ['interceptor/maps', 409, { statusCode: 409, message: 'mapped: original' }],
  ['interceptor/recovers', 200, { recovered: 'forgiven' }],
];

describe.each(byNest('express'))('exceptions on %s', (adapter) => {
  const { ask } = bothForms(adapter, application);

  it.each(expected)('%s answers %i', async (path, status, body) => {
    const answer = await ask(`/errors/${path}`);
    expect({ status: answer.status, body: JSON.parse(answer.text) as unknown }).toEqual({ status, body });
  });

  it('an error with a status of its own answers as Nest says: 416 in Nest 11, 500 in 12', async () => {
    expect([416, 500]).toContain((await ask('/errors/status-code')).status);
  });

  it('a body that is no JSON answers 400', async () => {
    const headers = { 'content-type': 'application/json' };
    expect((await ask('/errors/body', { method: 'POST', headers, body: '{"a":' })).status).toBe(400);
  });

  it('a body that is too large answers 413', async () => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ text: 'x'.repeat(2 ** 21) });
    expect((await ask('/errors/body', { method: 'POST', headers, body })).status).toBe(413);
  });

  it('a URL that cannot be decoded answers 400', async () => {
    expect((await ask('/errors/pipe/%E0%A4%A')).status).toBe(400);
  });
});
