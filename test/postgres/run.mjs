#!/usr/bin/env node
// npm run long -- postgres
// Runs the store of docs/extending.md for PostgreSQL: the published suite, and processes that count together while one of them is killed.
import { execFileSync, fork, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { transformWithOxc } from 'vite'
import { buildPackages, mistake, readArguments } from '../helpers/command.mjs'
import { Pool } from './client.mjs'

const PROCESSES = 3
const LIMIT = 200
const CALLS = 150
const KILLED_AFTER = 20

readArguments('usage: npm run long -- postgres', {}, values => values)
buildPackages()

const programs = ['/usr/lib/postgresql', '/usr/local/pgsql']
  .flatMap(folder => (existsSync(folder) ? readdirSync(folder).map(name => join(folder, name, 'bin')) : []))
  .find(folder => existsSync(join(folder, 'initdb')))
if (programs === undefined) mistake('there is no PostgreSQL; install it, as by: apt-get install postgresql')

const folder = mkdtempSync(join(tmpdir(), 'diana-postgres-'))
// PostgreSQL does not run as root
const isRoot = userInfo().uid === 0
const owner = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {}
const user = isRoot ? 'postgres' : userInfo().username
if (isRoot) chownSync(folder, owner.uid, owner.gid)
const data = join(folder, 'data')
execFileSync(join(programs, 'initdb'), ['-D', data, '-A', 'trust', '-U', user, '--no-sync'], {
  ...owner,
  stdio: 'ignore',
})
const server = spawn(join(programs, 'postgres'), ['-D', data, '-k', folder, '-h', '', '-F'], {
  ...owner,
  stdio: 'ignore',
})
const path = join(folder, '.s.PGSQL.5432')
const program = join(folder, 'postgres-store.mjs')

let failures = 0
try {
  for (let tries = 0; tries < 100 && !existsSync(path); tries++) await pause(100)
  const source = readFileSync(fileURLToPath(new URL('../docs/postgres-store.ts', import.meta.url)), 'utf8')
  writeFileSync(program, (await transformWithOxc(source, 'postgres-store.ts')).code)
  const { PostgresStore, schema } = await import(program)
  const pool = await connected()
  const client = await pool.connect()
  await client.query(schema)
  await runSuite(PostgresStore, client)
  await client.query('truncate ledgers')
  await countTogether()
  client.release()
  pool.end()
} finally {
  server.kill('SIGINT')
  await new Promise(resolve => server.once('exit', resolve))
  rmSync(folder, { recursive: true, force: true })
}
process.exit(failures === 0 ? 0 : 1)

function idOf(which) {
  return Number(execFileSync('id', [which, 'postgres'], { encoding: 'utf8' }))
}

/** The server accepts connections a moment after its socket is there. */
async function connected() {
  for (let tries = 1; ; tries++) {
    const pool = new Pool(path, user)
    const client = await pool.connect().catch(error => (tries < 50 ? undefined : Promise.reject(error)))
    if (client === undefined) {
      await pause(100)
      continue
    }
    client.release()
    return pool
  }
}

async function runSuite(PostgresStore, client) {
  const { storeSuite } = await import('../../packages/limiter/dist/testing/index.js')
  const create = async () => {
    await client.query('truncate ledgers')
    const pools = [new Pool(path, user), new Pool(path, user)]
    const [store, other] = pools.map(pool => new PostgresStore(pool))
    return { store, other, close: async () => pools.forEach(pool => void pool.end()) }
  }
  const tests = storeSuite({ create })
  for (const { name, run } of tests) {
    const error = await run().catch(error => error ?? new Error('unknown'))
    if (error) {
      failures++
      console.error(`${name}: ${error.stack}`)
    }
  }
  console.log(`storeSuite: ${tests.length} tests, ${failures} failed`)
}

/** Several processes take from one limit, and one is killed on the way: all others together get what is left, and not more. */
async function countTogether() {
  const children = Array.from({ length: PROCESSES }, () => {
    return fork(fileURLToPath(new URL('./process.mjs', import.meta.url)), [
      path,
      user,
      program,
      String(LIMIT),
      String(CALLS),
    ])
  })
  const told = children.map(
    child =>
      new Promise(resolve =>
        child.once('exit', () => resolve({ admitted: 0, refused: 0, healthy: true, ...child.last })),
      ),
  )
  for (const child of children) child.on('message', last => Object.assign(child, { last }))
  children[0].on('message', ({ admitted }) => {
    if (admitted === KILLED_AFTER) children[0].kill('SIGKILL')
  })
  const all = await Promise.all(told)
  const admitted = all.reduce((sum, one) => sum + one.admitted, 0)
  const isHealthy = all.every(({ healthy }) => healthy)
  // of the process that was killed, calls that were under way were counted, and are not told
  const isRight =
    isHealthy && admitted <= LIMIT && admitted >= LIMIT - 10 && all.slice(1).some(({ refused }) => refused > 0)
  if (!isRight) failures++
  console.log(
    `${PROCESSES} processes, one killed: ${admitted} of ${LIMIT} admitted, the store was ${isHealthy ? 'never' : 'once'} away`,
  )
}
