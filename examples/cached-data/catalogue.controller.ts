import { Controller, Get, Inject, Param } from '@nestjs/common';
import { Catalogue } from './catalogue.js';

const PRODUCTS_A_PAGE = 12;

@Controller('catalogue')
export class CatalogueController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  @Get(':page')
  async page(@Param('page') page: string) {
    const ids = Array.from({ length: PRODUCTS_A_PAGE }, (_, i) => String(Number(page) * PRODUCTS_A_PAGE + i));
    const [brands, prices, products] = await Promise.all([
      this.catalogue.brands(),
      this.catalogue.prices(ids),
      Promise.all(ids.map((id) => this.catalogue.product(id))),
    ]);
    return products.map(({ id, name, brand }, i) => ({ id, name, brand: brands[brand], price: prices[i] }));
  }
}
