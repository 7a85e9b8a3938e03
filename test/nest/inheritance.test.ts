import { Body, Controller, Get, Header, HttpCode, Param, ParseIntPipe, Post, Query, type Type } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { bothForms, withJson } from './applications.js';

@Controller('v1')
class V1Controller {
  protected readonly version: string = 'v1';
  @Get('who')
  who() {
    return { version: this.version, parameters: arguments.length };
  }
  @Get('items/:id')
  item(@Param('id') id: string): unknown {
    return { version: this.version, id, parameters: arguments.length };
  }
  @Get('kept/:id')
  @Header('x-kept', 'yes')
  kept(@Param('id', ParseIntPipe) id: number, @Query('q') q = 'none') {
    return { version: this.version, id, q, parameters: arguments.length };
  }
  @Post('made')
  @HttpCode(202)
  made(@Body() body: object) {
    return { version: this.version, ...body, parameters: arguments.length };
  }
  @Get('overridden')
  overridden() {
    return { by: 'v1' };
  }
  @Get('hidden')
  hidden(): unknown {
    return { hidden: false };
  }
}

@Controller('v2')
class V2Controller extends V1Controller {
  protected override readonly version = 'v2';
  /** One parameter more than the one that it overrides. */
  @Get('items/:id')
  override item(@Param('id') id: string, @Query('lang') lang?: string) {
    return { ...(super.item(id) as object), lang, parameters: arguments.length };
  }
  /** The route's metadata stand on the method that this one takes the place of. */
  override overridden() {
    return { by: 'v2' };
  }
  @Get('shown')
  override hidden() {
    return { hidden: true, was: super.hidden() };
  }
}

@Controller('v3')
class V3Controller extends V2Controller {}

function crud(name: string, values: string[]): Type {
  @Controller(name)
  class CrudController {
    @Get()
    all() {
      return values;
    }
    @Get(':index')
    one(@Param('index', ParseIntPipe) index: number) {
      return { value: values[index], handler: this.constructor.name };
    }
  }
  Object.defineProperty(CrudController, 'name', { value: `${name}Crud` });
  return CrudController;
}
function timestamped<B extends Type>(Base: B) {
  class Timestamped extends Base {
    @Get('mixed/in')
    mixed() {
      return { mixed: this.constructor.name, parameters: arguments.length };
    }
  }
  return Timestamped;
}
@Controller('cats')
class CatsController extends timestamped(crud('cats', ['tom', 'kit'])) {}
const DogsController = crud('dogs', ['rex']);

@Controller('bound')
class BoundController {
  private readonly secret = 'own';
  constructor() {
    this.method = this.method.bind(this);
  }
  @Get('method')
  method(@Query('q') q?: string) {
    return { secret: this.secret, q, parameters: arguments.length };
  }
  @Get('detached')
  detached() {
    const { method } = this;
    return method('detached');
  }
  @Get('internal')
  internal() {
    return this.method('internal');
  }
}

const controllers = [V1Controller, V2Controller, V3Controller, CatsController, DogsController, BoundController];

const expected: [string, unknown][] = [
  ['/v1/who', { version: 'v1', parameters: 0 }],
  ['/v2/who', { version: 'v2', parameters: 0 }],
  ['/v3/who', { version: 'v2', parameters: 0 }],
  ['/v1/items/7?lang=de', { version: 'v1', id: '7', parameters: 1 }],
  ['/v2/items/7?lang=de', { version: 'v2', id: '7', lang: 'de', parameters: 2 }],
  ['/v3/items/7?lang=de', { version: 'v2', id: '7', lang: 'de', parameters: 2 }],
  ['/v1/kept/7?q=a', { version: 'v1', id: 7, q: 'a', parameters: 2 }],
  ['/v2/kept/7?q=a', { version: 'v2', id: 7, q: 'a', parameters: 2 }],
  ['/v1/overridden', { by: 'v1' }],
  ['/v1/hidden', { hidden: false }],
  ['/v2/shown', { hidden: true, was: { hidden: false } }],
  ['/cats', ['tom', 'kit']],
  ['/cats/1', { value: 'kit', handler: 'CatsController' }],
  ['/cats/mixed/in', { mixed: 'CatsController', parameters: 0 }],
  ['/dogs/0', { value: 'rex', handler: 'dogsCrud' }],
  ['/bound/detached', { secret: 'own', q: 'detached', parameters: 1 }],
  ['/bound/internal', { secret: 'own', q: 'internal', parameters: 1 }],
];
describe.each(acrossNests('express'))('controllers on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, () => ({ controllers }));

  it.each(expected)('%s gets what its class says', async (path, body) => {
    expect(await json(path)).toEqual(body);
  });

  it('keep the decorators of the methods that they inherit', async () => {
    expect(await ask('/v3/kept/7')).toMatchObject({ status: 200, headers: { 'x-kept': 'yes' } });
    expect((await ask('/v3/kept/seven')).status).toBe(400);
    const answer = await ask('/v2/made', withJson('POST', { a: 1 }));
    expect(answer).toMatchObject({ status: 202, text: '{"version":"v2","a":1,"parameters":1}' });
  });

  it.each(['/v2/overridden', '/v2/hidden', '/bound/method?q=a'])(
    'answer %s as Nest does: the method there has no route of its own',
    async (path) => {
      await ask(path);
    },
  );
});
