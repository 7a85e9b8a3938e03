import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestInterceptor,
  type NestMiddleware,
  Param,
  type PipeTransform,
  Post,
  Req,
  RequestMethod,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { tap } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { byNest } from '../fixtures/app.js';
import { bothForms } from './applications.js';

/** The raw request under Express; Fastify's holds it. */
interface Marked {
  steps?: string[];
  raw?: Marked;
  originalUrl?: string;
  url?: string;
}
interface Response {
  statusCode: number;
  setHeader(name: string, value: string): void;
  end(text: string): void;
}
const stepsOf = (request: Marked): string[] => ((request.raw ?? request).steps ??= []);
const step = (name: string) => (request: Marked, _response: Response, next: () => void) => {
  stepsOf(request).push(name);
  next();
};

@Injectable()
class Names {
  readonly name = 'class';
}
@Injectable()
class ClassMiddleware implements NestMiddleware {
  constructor(private readonly names: Names) {}
  use(request: Marked, response: Response, next: () => void) {
    step(this.names.name)(request, response, next);
  }
}
@Injectable()
class AsyncMiddleware implements NestMiddleware {
  async use(request: Marked, response: Response, next: () => void) {
    await new Promise((resolve) => setImmediate(resolve));
    step('async')(request, response, next);
  }
}
class StepGuard implements CanActivate {
  canActivate(context: ExecutionContext) {
    stepsOf(context.switchToHttp().getRequest()).push('guard');
    return true;
  }
}
class StepInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler) {
    const steps = stepsOf(context.switchToHttp().getRequest());
    steps.push('interceptor');
    return next.handle().pipe(tap((value: { steps: string[] }) => value.steps.push('interceptor again')));
  }
}
class StepPipe implements PipeTransform {
  transform(value: unknown) {
    return `piped ${String(value)}`;
  }
}

@Controller('steps')
@UseGuards(StepGuard)
@UseInterceptors(StepInterceptor)
class StepsController {
  @Get()
  all(@Req() request: Marked) {
    return { steps: [...stepsOf(request), 'handler'] };
  }
  @Get('excluded')
  excluded(@Req() request: Marked) {
    return { steps: [...stepsOf(request), 'handler'] };
  }
  @Get('deep/:id/more')
  deep(@Req() request: Marked, @Param('id', StepPipe) id: string) {
    return { steps: [...stepsOf(request), id] };
  }
  @Post()
  create(@Req() request: Marked) {
    return { steps: [...stepsOf(request), 'created'] };
  }
  @Get('answered')
  answered() {
    return { steps: ['never'] };
  }
  @Get('failing')
  failing() {
    return { steps: ['never'] };
  }
}

@Module({})
class InnerModule {
  configure(consumer: MiddlewareConsumer) {
    consumer.apply(step('inner module')).forRoutes('steps');
  }
}

const application = () => ({
  imports: [InnerModule],
  controllers: [StepsController],
  providers: [Names],
  configure: (consumer: MiddlewareConsumer) =>
    void consumer
      .apply(ClassMiddleware, AsyncMiddleware, step('function'))
      .exclude({ path: 'steps/excluded', method: RequestMethod.GET }, 'other')
      .forRoutes(StepsController)
      .apply(step('of POST'))
      .forRoutes({ path: 'steps', method: RequestMethod.POST })
      .apply(step('wildcard'))
      .forRoutes('steps/deep/*path')
      .apply((_request: Marked, response: Response) => {
        response.statusCode = 202;
        response.setHeader('x-answered', 'by the middleware');
        response.end('answered');
      })
      .forRoutes('steps/answered', 'unrouted')
      .apply((_request: Marked, _response: Response, next: (error: Error) => void) => next(new Error('failed')))
      .forRoutes('steps/failing'),
});

describe.each(byNest('express'))('middleware on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, application);
  const around = (...steps: string[]) => ['guard', 'interceptor', ...steps, 'interceptor again'];
  const ofController = ['class', 'async', 'function'];

  // Which of two modules comes first is for Nest to say; the comparison with the bare form holds the order.
  const stepsAt = async (path: string, method = 'GET') =>
    ((await json(path, { method })) as { steps: string[] }).steps.filter((name) => name !== 'inner module');

  it('runs before guards, interceptors and the handler, in its order', async () => {
    expect(await stepsAt('/steps')).toEqual([...ofController, ...around('handler')]);
  });

  it('leaves out what is excluded', async () => {
    expect(await stepsAt('/steps/excluded')).toEqual(around('handler'));
  });

  it('runs by method', async () => {
    expect(await stepsAt('/steps', 'POST')).toEqual([...ofController, 'of POST', ...around('created')]);
  });

  it('runs by wildcard', async () => {
    expect(await stepsAt('/steps/deep/7/more')).toEqual([...ofController, 'wildcard', ...around('piped 7')]);
  });

  it('runs by modules that are imported', async () => {
    expect(((await json('/steps')) as { steps: string[] }).steps).toContain('inner module');
  });

  it.each(['/steps/answered', '/unrouted'])('may answer %s itself', async (path) => {
    const { status, headers, text } = await ask(path);
    expect({ status, by: headers['x-answered'], text }).toEqual({
      status: 202,
      by: 'by the middleware',
      text: 'answered',
    });
  });

  it('answers 500 when it passes an error on', async () => {
    const { status, text } = await ask('/steps/failing');
    expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 500, body: { statusCode: 500 } });
  });
});

describe.each(byNest('fastify'))('app.use() on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, () => ({
    ...application(),
    main: (app) => {
      app.setGlobalPrefix('api', { exclude: ['/steps/excluded'] });
      app.use(step('first'));
      app.use(step('second'));
      app.use('/mounted', (request: Marked, response: Response) => {
        response.end(`${request.originalUrl} as ${request.url}`);
      });
      app.use((_request: Marked, response: Response, next: () => void) => {
        response.setHeader('x-used', 'yes');
        next();
      });
    },
  }));

  it('runs before the middleware of modules, under a global prefix', async () => {
    const { steps } = (await json('/api/steps')) as { steps: string[] };
    expect(steps.slice(0, 2)).toEqual(['first', 'second']);
    expect(steps).toEqual(expect.arrayContaining(['class', 'async', 'function', 'guard', 'handler']));
    expect(new Set(steps).size).toBe(steps.length);
  });

  it('runs for routes that the prefix leaves out, and for those that are not found', async () => {
    expect(await ask('/steps/excluded')).toMatchObject({ status: 200, headers: { 'x-used': 'yes' } });
    expect(await ask('/steps')).toMatchObject({ status: 404, headers: { 'x-used': 'yes' } });
  });

  it('may answer for a path of its own', async () => {
    expect(await ask('/mounted/here?x=1')).toMatchObject({ status: 200, text: '/mounted/here?x=1 as /here?x=1' });
  });
});
