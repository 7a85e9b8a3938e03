export { serve } from '../../offload/worker/serve.js';
