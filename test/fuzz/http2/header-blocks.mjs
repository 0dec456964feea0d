import { apiKey } from '../plan/requests.mjs'
import { field, integer } from './frames.mjs'

const prefixes = ['', '', '', '/limited', '/queued', '/slots', '/nowhere', '/good']
const methods = ['GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'QUERY']

const block = (random, fields) => fields.map(([name, value]) => field(name, value, random.chance(0.2))).join('')

/** The fields of a call that servers must accept. */
function plainFields(random, { answers, method = random.pick(methods) }) {
  return [
    [':method', method],
    [':scheme', 'http'],
    [':authority', 'fuzz.example'],
    [':path', `${random.pick(prefixes)}/a?answer=${random.int(0, Math.max(0, answers.length - 1))}`],
    ['x-api-key', apiKey],
  ]
}

/** The header block of a call that servers must accept. */
export function plainBlock(random, options) {
  return block(random, plainFields(random, options))
}

const oddFields = [
  random => [':method', random.pick(['CONNECT', 'TRACE', '', 'get', 'GET GET', 'PRI', 'x'.repeat(300)])],
  random => [':path', random.pick(['', '*', 'a', '//', '/%zz', '/\0', 'http://b/', '/..;/a', `/${'p'.repeat(3000)}`])],
  random => [':authority', random.pick(['', 'a b', 'a@b', '[::1', 'a:99999', '\xff', 'a'.repeat(300)])],
  random => [':scheme', random.pick(['', 'https', 'ftp', '\0'])],
  random => [random.pick([':protocol', ':status', ':', ':unknown']), random.pick(['websocket', '200', ''])],
  random => ['host', random.pick(['fuzz.example', 'other.example', ''])],
  random => [random.pick(['connection', 'transfer-encoding', 'upgrade', 'keep-alive', 'proxy-connection']), 'chunked'],
  random => ['te', random.pick(['trailers', 'gzip'])],
  random => ['content-length', random.pick(['0', '1', '5', '99999999999999999999', '-1', 'x', '1, 1'])],
  random => ['expect', random.pick(['100-continue', 'x'])],
  random => ['content-type', random.pick(['application/grpc', 'application/grpc-web+proto', '\xe4'])],
  random => ['grpc-timeout', random.pick(['1n', '1m', '99999999H', '0S', 'x'])],
  random => ['accept-encoding', random.pick(['gzip', 'br;q=0', '*', '\x7f'])],
  random => ['if-none-match', random.pick(['*', '"a"', 'W/"a"'])],
  () => ['range', 'bytes=0-,-1'],
  random => ['cookie', 'a=b; '.repeat(random.int(1, 200))],
  random => [random.pick(['X-Upper', 'x y', 'x\0', '', '__proto__', 'constructor', '\xff']), 'value'],
  random => ['x-odd', random.pick(['\0', '\r\n', ' a ', '\x7f', '\xff\xfe'])],
  random => ['x-long', 'l'.repeat(random.int(1000, 20_000))],
  () => ['x-api-key', 'wrong'],
]

/** What is no header block at all, or not one that a decoder may accept (RFC 7541). */
const brokenBlocks = [
  random => random.bytes(random.int(1, 200)),
  // an index that is in no table
  random => integer(random.pick([0, 62, 200, 2 ** 31, 2 ** 40]), 7, 0x80),
  // the size of the dynamic table: within its bound, beyond it, and where it may not stand
  random => integer(random.pick([0, 1, 4096, 4097, 2 ** 32]), 5, 0x20),
  () => field('x', 'y') + integer(0, 5, 0x20),
  // a length beyond the block
  random => `\x00\x01x${integer(random.pick([100, 2 ** 21, 2 ** 35]), 7)}y`,
  // Huffman codes: padding that is too long, the end of string within
  () => '\x00\x81\xff\x81\xff',
  () => '\x00\x01x\x84\xff\xff\xff\xff',
  () => '\xff\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01',
  // few bytes that stand for many: one long field, then its index again and again
  random => field('x-long', 'l'.repeat(3000), true) + '\xbe'.repeat(random.int(10, 3000)),
]

/** A header block with faults: in its fields, in their order, or in its coding. */
export function oddBlock(random, options) {
  const fields = plainFields(random, options)
  for (let left = random.int(1, 4); left > 0; left--) {
    const [name, value] = random.pick(oddFields)(random)
    const at = fields.findIndex(([known]) => known === name)
    if (at >= 0 && random.chance(0.5)) fields[at] = [name, value]
    else if (random.chance(0.2)) fields.splice(random.int(0, fields.length), 0, [name, value])
    else fields.push([name, value])
  }
  if (random.chance(0.1)) fields.splice(random.int(0, 3), 1)
  const text = block(random, fields)
  return random.chance(0.8) ? text : random.pick([(a, b) => a + b, (a, b) => b + a])(text, brokenBlock(random))
}

export function brokenBlock(random) {
  return random.pick(brokenBlocks)(random)
}

/** Trailers, most of which are fine. */
export function trailerBlock(random) {
  return random.chance(0.8) ? field('x-sum', '1') : block(random, [random.pick(oddFields)(random)])
}
