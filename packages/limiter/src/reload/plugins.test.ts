import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { algorithms } from '../algorithms/index.ts'
import { createLimiter } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { mergeExtensions } from './extensions.ts'
import { pluginsNamedIn } from './plugin-names.ts'
import { importPlugins } from './plugins.ts'

const folder = mkdtempSync(join(tmpdir(), 'diana-plugins-'))
const limiters: Limiter[] = []

afterEach(async () => {
  for (const limiter of limiters.splice(0)) await limiter.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
  return path
}

/** An algorithm that admits `limit` calls and then none, a dimension, and a source that says the same for ever. */
const plugin = `
export const algorithms = [{
  name: 'ever',
  limit: 'count',
  options: {},
  meter: ({ count }) => ({
    slots: 1, maxWaitUs: 0, held: false,
    delay: (state, at, now, cost) => state[at] + cost > count ? Infinity : 0,
    take: (state, at, now, cost) => { state[at] += cost },
    giveBack: () => {},
    remaining: (state, at) => count - state[at],
    idleAt: (state, at) => state[at] === 0 ? 0 : Infinity,
  }),
}]
export const dimensions = [{ name: 'weekday', argument: 'none', read: call => call.headers['x-weekday'] }]
export const sources = [{
  name: 'fixed',
  options: {},
  create: address => ({
    name: 'fixed ' + address,
    async *watch(signal) {
      yield { text: 'rules: [{ id: added, limit: ' + address + ', algorithm: ever }]', version: '1' }
      await new Promise(resolve => signal.addEventListener('abort', resolve))
    },
  }),
}]
`
const rules = 'rules: [{ id: own, by: weekday, limit: 2, algorithm: ever }]\n'

async function limiterOf(config: string): Promise<Limiter> {
  const limiter = await createLimiter({ config })
  limiters.push(limiter)
  return limiter
}

describe('a module named under plugins', () => {
  it('a plugin module adds an algorithm, a dimension and a source that rules may name', async () => {
    file('own/words.mjs', plugin)
    const config = file('diana.yaml', `plugins: [./own/words.mjs]\nremote: { fixed: '3' }\n${rules}`)
    const limiter = await limiterOf(config)
    expect(limiter.status().rules).toMatchObject([
      { id: 'own', algorithm: 'ever', origin: config },
      { id: 'added', algorithm: 'ever', origin: 'fixed 3' },
    ])
    const call = (day: string) => limiter.check({ method: 'GET', path: '/', headers: { 'x-weekday': day } })
    const verdicts = [await call('mon'), await call('mon'), await call('mon'), await call('tue'), await call('wed')]
    expect(verdicts.map(({ allowed, rule }) => rule ?? allowed)).toEqual([true, true, 'own', true, 'added'])
  })

  it('a plugin may be a package that is resolved from the rule file', async () => {
    const manifest = (exports: unknown) => JSON.stringify({ name: 'own-words', type: 'module', exports })
    file('with-package/node_modules/own-words/package.json', manifest('./words.js'))
    file('with-package/node_modules/own-words/words.js', plugin)
    const limiter = await limiterOf(
      file(
        'with-package/diana.json',
        JSON.stringify({ plugins: ['own-words'], rules: [{ id: 'own', by: 'weekday', limit: 2, algorithm: 'ever' }] }),
      ),
    )
    expect(limiter.status().rules).toMatchObject([{ algorithm: 'ever' }])
  })

  it('options of a plugin are validated', async () => {
    file('own/words.mjs', plugin)
    const config = file(
      'diana.yaml',
      'plugins: [./own/words.mjs]\nrules: [{ id: own, by: wekday, limit: 2, algorithm: evr }]',
    )
    await expect(limiterOf(config)).rejects.toThrow(/did you mean weekday\?\n.*did you mean ever\?/)
  })

  it.each([
    ['is not there', './none.mjs', /the plugin \.\/none\.mjs cannot be loaded: Cannot find module/],
    [
      'is no package',
      'no-such-package',
      /the plugin no-such-package cannot be loaded: Cannot find module 'no-such-package'/,
    ],
    ['throws', './throws.mjs', /the plugin \.\/throws\.mjs cannot be loaded: broken on purpose$/],
    ['throws nothing in particular', './throws-text.mjs', /cannot be loaded: just text$/],
    ['is not JavaScript', './text.mjs', /the plugin \.\/text\.mjs cannot be loaded: /],
    [
      'has none of the lists',
      './empty.mjs',
      /the plugin \.\/empty\.mjs exports none of algorithms, dimensions, sources: export a list of yours$/,
    ],
    [
      'has one that is no list',
      './no-list.mjs',
      /exports algorithms that are no list: write export const algorithms = \[yours\]$/,
    ],
    [
      'has one with something else in it',
      './junk.mjs',
      /exports dimensions\[1\], which is none: it needs a name and a function read$/,
    ],
    ['brings a name that is taken', './taken.mjs', /two algorithms are named token-bucket: give one another name$/],
  ])('a plugin that %s is reported as an error', async (_, name, message) => {
    file('throws.mjs', 'throw new Error("broken on purpose")')
    file('throws-text.mjs', 'throw "just text"')
    file('text.mjs', 'this is a letter')
    file('empty.mjs', 'export const rules = []')
    file('no-list.mjs', 'export const algorithms = { name: "x" }')
    file('junk.mjs', 'export const dimensions = [{ name: "a", argument: "none", read() {} }, 42]')
    file('taken.mjs', 'export const algorithms = [{ name: "token-bucket", limit: "rate", options: {}, meter() {} }]')
    const limiter = limiterOf(file('diana.yaml', `plugins: [${name}]\n${rules}`))
    await expect(limiter).rejects.toMatchObject({ code: 'BAD_RULES', message: expect.stringMatching(message) })
  })
})

describe('pluginsNamedIn', () => {
  it.each([
    ['plugins: [a, ./b.mjs]\nrules: []', ['a', './b.mjs']],
    ['{"plugins": ["a"]}', ['a']],
    ['\uFEFFplugins: [a]', ['a']],
    ['rules: [{ id: plugins, limit: 1/s }]', []],
    ['plugins: a', []],
    ['plugins: [1, a]', ['a']],
    ['plugins: [', []],
    ['', []],
    [`plugins: [a] #${'x'.repeat(4 * 1024 * 1024)}`, []],
  ])('pluginsNamedIn finds the plugins of %.40s', (text, names) => {
    expect(pluginsNamedIn(text)).toEqual(names)
  })
})

describe('mergeExtensions', () => {
  it('mergeExtensions takes a plugin that was loaded twice only once', async () => {
    const path = file('own/words.mjs', plugin)
    const twice = [...(await importPlugins([path], 'a')), ...(await importPlugins([path], 'b'))]
    expect(mergeExtensions({}, twice).algorithms.map(({ name }) => name)).toEqual([
      ...algorithms.map(one => one.name),
      'ever',
    ])
  })

  it('mergeExtensions replaces built-in members with given ones', () => {
    const given = algorithms.slice(0, 2)
    expect(mergeExtensions({ algorithms: given }, []).algorithms).toEqual(given)
  })
})

it('a plugin module is found by its absolute path', async () => {
  const path = fileURLToPath(new URL('../algorithms/index.ts', import.meta.url))
  const [plugin] = await importPlugins([path], 'anywhere')
  expect(plugin!.algorithms).toHaveLength(algorithms.length)
})
