import { buildPageInSources } from '../../scripts/page.mjs';

/** The dashboard's page, bundled into src: the tests run the sources. */
export default buildPageInSources;
