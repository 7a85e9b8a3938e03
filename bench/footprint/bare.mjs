// The same API without this library, not even imported.
import { serveApi } from '../overhead/application.mjs';

await serveApi();
