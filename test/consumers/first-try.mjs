// What a new user writes first, in each environment of docs/packages.md: with the packed library and the commands of the docs, no settings.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** Asks an application three times, prints the statuses, and ends. */
const asking = `
async function asked(url) {
  const statuses = []
  for (let call = 0; call < 3; call++) statuses.push((await fetch(url)).status)
  console.log(statuses.join(' '))
  process.exit()
}
`
const listening = name => `const server = ${name}.listen(0, () => asked('http://127.0.0.1:' + server.address().port))\n`
const line = "rateLimit({ limit: '2/m', status: 429 })"

/** The body of an application, which has rateLimit and its framework. */
const applications = {
  express: `const app = express()
app.use(${line})
app.get('/', (_request, response) => response.send('hello'))
${listening('app')}`,
  fastify: `const app = Fastify()
app.register(${line})
app.get('/', async () => 'hello')
app.listen({ port: 0 }).then(url => asked(url.replace('[::1]', '127.0.0.1')))
`,
  koa: `const app = new Koa()
app.use(${line})
app.use(context => {
  context.body = 'hello'
})
${listening('app')}`,
  hono: `const app = new Hono()
app.use(${line})
app.get('/', context => context.text('hello'))
const server = serve({ fetch: app.fetch, port: 0 }, ({ port }) => asked('http://127.0.0.1:' + port))
`,
  http: `const server = createServer(rateLimit({ limit: '2/m', status: 429 }, (_request, response) => response.end('hello')))
server.listen(0, () => asked('http://127.0.0.1:' + server.address().port))
`,
  fetch: `const handle = ${line}.wrap(() => new Response('hello'))
const answers = []
const next = async () => answers.push((await handle(new Request('http://a.example/'), '203.0.113.1')).status)
next().then(next).then(next).then(() => console.log(answers.join(' ')))
`,
}

/** How each module is loaded: the name that the program gives it, and whether it is a default export. */
const imports = {
  express: [['express', 'express']],
  fastify: [['Fastify', 'fastify']],
  koa: [['Koa', 'koa']],
  hono: [
    ['{ Hono }', 'hono'],
    ['{ serve }', '@hono/node-server'],
  ],
  http: [['{ createServer }', 'node:http']],
  fetch: [],
}

function program(framework, system) {
  const lines = [['{ rateLimit }', `diana-limiter/${framework}`], ...imports[framework]].map(([name, from]) => {
    if (system === 'import') return `import ${name} from '${from}'\n`
    // what has a default export gives a module that has it
    return from === 'koa'
      ? `const Koa = require('koa').default ?? require('koa')\n`
      : `const ${name} = require('${from}')\n`
  })
  return `${lines.join('')}${asking}${applications[framework]}`
}

const clockTest = (begin, advance) => `
  ${begin}
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/m' }] })
  const call = { method: 'GET', path: '/' }
  const passed = [(await limiter.check(call)).allowed, (await limiter.check(call)).allowed]
  ${advance}
  passed.push((await limiter.check(call)).allowed)
  await limiter.close()
`
const library = "import { createLimiter } from 'diana-limiter'\n"
const expectation = 'true,false,true'

const nodeTest = `${library}import assert from 'node:assert'
import { test } from 'node:test'
test('fake timers', async ({ mock }) => {${clockTest("mock.timers.enable({ apis: ['Date'], now: Date.now() })", 'mock.timers.tick(120_000)')}
  assert.equal(String(passed), '${expectation}')
})
`
const vitestTest = `${library}import { expect, test, vi } from 'vitest'
test('fake timers', async () => {${clockTest('vi.useFakeTimers()', 'vi.advanceTimersByTime(120_000)')}
  expect(String(passed)).toBe('${expectation}')
})
`
const jestTest = `${library}import { jest } from '@jest/globals'
test('fake timers', async () => {${clockTest("jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] })", 'jest.advanceTimersByTime(120_000)')}
  expect(String(passed)).toBe('${expectation}')
})
`

const web = Object.keys(applications).flatMap(framework =>
  ['import', 'require'].map(system => ({
    name: `${framework}, ${system}`,
    file: `app.${system === 'import' ? 'mjs' : 'cjs'}`,
    text: program(framework, system),
    command: file => [file],
    holds: output => output === '200 200 429',
  })),
)

/** Each environment: a program, the arguments of Node that run it, and whether it printed what it must. */
export const environments = [
  ...web,
  {
    name: 'node --test with mock.timers',
    file: 'clock.test.mjs',
    text: nodeTest,
    command: file => ['--test', file],
    holds: output => /^(?:#|ℹ) pass 1$/m.test(output),
  },
  {
    name: 'Vitest with fake timers',
    file: 'clock.test.mjs',
    text: vitestTest,
    command: (_file, modules) => [join(modules, 'vitest/vitest.mjs'), 'run'],
    holds: output => /1 passed/.test(output),
  },
  {
    name: 'Jest with fake timers, ES modules',
    file: 'clock.test.mjs',
    text: jestTest,
    more: { 'jest.config.json': '{ "testMatch": ["**/*.test.mjs"], "transform": {} }\n' },
    command: (_file, modules) => ['--experimental-vm-modules', join(modules, 'jest/bin/jest.js')],
    holds: output => /Tests: +1 passed/.test(output),
    long: true,
  },
]

/** Tries one environment in a folder of its own; resolves to '' or to what was printed instead. */
export async function tryFirst({ name, file, text, command, holds, more = {} }, consumer, modules) {
  const folder = `first-${name.replace(/\W+/g, '-')}`
  mkdirSync(consumer.path(folder))
  writeFileSync(consumer.path(`${folder}/package.json`), '{ "name": "first", "private": true }\n')
  for (const [path, content] of Object.entries({ [file]: text, ...more })) {
    writeFileSync(consumer.path(`${folder}/${path}`), content)
  }
  const { output } = await consumer.node(command(file, modules), consumer.path(folder))
  return holds(stripVTControlCharacters(output)) ? '' : `${name}: ${output}`
}

/** The table of what works at the first try. */
export function tableOf(results) {
  const rows = results.map(({ name, wrong }) => `| ${name} | ${wrong === '' ? 'at the first try' : 'no'} |`)
  return ['| environment | works |', '|---|---|', ...rows].join('\n')
}
