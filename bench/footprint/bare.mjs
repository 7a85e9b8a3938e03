// Serves the same API without this library, which is not even imported.
import { serveApi } from '../overhead/application.mjs';

await serveApi();
