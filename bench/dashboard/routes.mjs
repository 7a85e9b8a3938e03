// Two hundred routes of one controller, and a path for each.
import { Controller, Get } from '@nestjs/common';
import { decorate, decorateMethod, userOf } from '../overhead/application.mjs';

const NAMES = Array.from({ length: 200 }, (_, i) => `resource-${i}`);
export const PATHS = NAMES.map((name) => `/${name}/42`);

export class ResourcesController {}
for (const name of NAMES) {
  ResourcesController.prototype[name] = () => userOf('42');
  decorateMethod(ResourcesController, name, Get(`${name}/:id`));
}
decorate(ResourcesController, Controller());
