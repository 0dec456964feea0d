import { DianaError } from '../../errors.ts'

type Fields = Readonly<Record<string, unknown>>

/** The frameworks, by the entry of their filter, and how their handlers are recognized by what they are called with. */
const frameworks: Readonly<Record<string, (first: Fields, second: unknown) => boolean>> = {
  fetch: ({ headers }) => typeof (headers as Partial<Headers> | undefined)?.get === 'function',
  hono: ({ req }) => fieldsOf(req).raw !== undefined,
  koa: ({ req, res, app }) => fieldsOf(req).socket !== undefined && res !== undefined && app !== undefined,
  fastify: ({ raw }, second) => raw !== undefined && fieldsOf(second).raw !== undefined,
  express: ({ app, socket }) => app !== undefined && socket !== undefined,
  http: ({ socket }) => socket !== undefined,
}

/** Throws, with the remedy, if a filter got arguments of a handler that are not of its own framework. */
export function assertMounted(entry: string, isOwn: boolean, args: readonly unknown[]): void {
  if (!isOwn) throw mountedElsewhere(entry, args)
}

/** Returns the error of a filter that is mounted in another framework than its own. */
export function mountedElsewhere(entry: string, [first, second]: readonly unknown[]): DianaError {
  const found = Object.keys(frameworks).find(name => frameworks[name]!(fieldsOf(first), second))
  const remedy = `import it from 'diana-limiter/${found ?? 'http'}'`
  const known = found === undefined ? `${remedy}, or from the entry of your framework` : remedy
  return new DianaError('BAD_CALL', `the filter of diana-limiter/${entry} is mounted in another framework: ${known}`)
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
