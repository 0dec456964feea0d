// Writes an access log of invented traffic to standard output: `node test/replay/generate-log.mjs --lines 100000`.
// Most callers are calm; three abusers are not: a scraper, a password guesser and one that sends bursts.
import { parseArgs } from 'node:util'
import { seededRandom } from '../helpers/seeded-random.mjs'

const { values } = parseArgs({
  options: {
    lines: { type: 'string', default: '100000' },
    callers: { type: 'string', default: '2000' },
    seed: { type: 'string', default: '1' },
    start: { type: 'string', default: '2026-11-16T08:00:00Z' },
    rate: { type: 'string', default: '60' },
  },
})

export const abusers = { scraper: '198.51.100.7', guesser: '198.51.100.23', burster: '198.51.100.99' }

const random = seededRandom(Number(values.seed))

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const agents = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile Safari/604.1',
  'shop-app/3.2 (Android 16)',
]
const paths = [
  '/',
  '/products',
  '/products/17',
  '/products/42?color=red',
  '/cart',
  '/api/orders',
  '/api/orders/7',
  '/static/app.js',
]

function addressOf(caller) {
  return `203.0.${113 + Math.floor(caller / 250)}.${1 + (caller % 250)}`
}

function clf(ms) {
  const iso = new Date(ms).toISOString()
  return `${iso.slice(8, 10)}/${months[Number(iso.slice(5, 7)) - 1]}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
}

/** The next call: by one of the abusers now and then. */
function call(ms) {
  const share = random()
  if (share < 0.03) return [abusers.scraper, 'GET', `/products/${Math.floor(random() * 5000)}`, 200]
  if (share < 0.035) return [abusers.guesser, 'POST', '/login', 401]
  // one second in every two minutes
  if (Math.floor(ms / 1000) % 120 === 0 && share < 0.6) return [abusers.burster, 'GET', '/api/orders', 200]
  const caller = Math.floor(random() * Number(values.callers))
  const path = paths[Math.floor(random() * paths.length)]
  const status = random() < 0.02 ? 404 : random() < 0.005 ? 500 : 200
  if (random() < 0.01) return [addressOf(caller), 'POST', '/login', random() < 0.2 ? 401 : 200]
  return [addressOf(caller), path === '/api/orders' && random() < 0.3 ? 'POST' : 'GET', path, status]
}

const lines = Number(values.lines)
let ms = Date.parse(values.start)
let text = ''
for (let line = 0; line < lines; line++) {
  ms += (-Math.log(1 - random()) * 1000) / Number(values.rate)
  const [address, method, target, status] = call(ms)
  const agent = agents[Math.floor(random() * agents.length)]
  text += `${address} - - [${clf(ms)}] "${method} ${target} HTTP/1.1" ${status} ${Math.floor(random() * 20000)} "-" "${agent}"\n`
  if (text.length > 1 << 16) {
    if (!process.stdout.write(text)) await new Promise(resolve => process.stdout.once('drain', resolve))
    text = ''
  }
}
process.stdout.write(text)
