import { DianaError } from './errors.ts'

/**
 * Throws: `rateLimit` is in the entry of each framework, such as `diana-limiter/express`. It is here so that an import from the wrong
 * entry is explained.
 *
 * @deprecated Import it from `diana-limiter/express`, or from the entry of your framework.
 */
export function rateLimit(..._args: never[]): never {
  throw elsewhere('rateLimit')
}

/**
 * Throws: `diana` is in the entry of each framework, such as `diana-limiter/express`.
 *
 * @deprecated Import it from `diana-limiter/express`, or from the entry of your framework.
 */
export function diana(..._args: never[]): never {
  throw elsewhere('diana')
}

function elsewhere(name: string): DianaError {
  const remedy = `write import { ${name} } from 'diana-limiter/express', or from /fastify, /koa, /hono, /http or /fetch`
  return new DianaError(
    'BAD_CALL',
    `${name} comes from the entry of your framework: ${remedy}; for Nest, DianaModule from /nest`,
  )
}
