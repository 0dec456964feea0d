import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { flagsOf } from './scenes.mjs'

const model = fileURLToPath(new URL('fleet.pml', import.meta.url))
/** No run of the model is longer. */
const MOST_STEPS = 100_000
const MOST_MEGABYTES = 4000

/**
 * Looks at all states of the model with the given flags by Spin. Returns how many there are, the length of the longest run, and if a
 * claim fails, which one and after how many steps; throws if not all states could be looked at. `isQuick` is for scenes with few states.
 */
export async function checkModel(flags, { isQuick = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-model-'))
  const start = (command, args) => run(command, args, { cwd: folder })
  try {
    const defines = Object.entries(flags).map(([name, value]) => `#define ${name} ${value}\n`)
    writeFileSync(join(folder, 'scene.pml'), `${defines.join('')}#include "${model}"\n`)
    await start('spin', ['-a', 'scene.pml'])
    // a small scene takes less time than the compiler's optimizer
    const options = [
      isQuick ? '-O0' : '-O1',
      '-w',
      '-DSAFETY',
      '-DCOLLAPSE',
      `-DMEMLIM=${MOST_MEGABYTES}`,
      '-DVECTORSZ=2048',
    ]
    await start('gcc', [...options, '-o', 'pan', 'pan.c'])
    return outcomeOf(await start('./pan', [`-m${MOST_STEPS}`, '-n']))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Checks a scene with so many processes. */
export async function checkScene(scene, processes, options) {
  return await checkModel(flagsOf(scene, processes), options)
}

/** Checks the model with a fault of before put back in. */
export async function checkMutant(mutant, options) {
  return await checkModel({ ...flagsOf(mutant, 2), [mutant.name]: 1 }, options)
}

function outcomeOf(text) {
  const [, depth] = text.match(/depth reached (\d+)/) ?? []
  const [, states] = text.match(/(\d+) states, stored/) ?? text.match(/([\d.e+]+) states, stored/) ?? []
  if (depth === undefined || states === undefined || /max search depth too small|out of memory|truncated/.test(text)) {
    throw new Error(`the model was not checked to its end:\n${text}`)
  }
  const failed = text.match(/pan:\d+: (.*) \(at depth (\d+)\)/)
  const failure = failed ? { claim: claimOf(failed[1]), steps: Number(failed[2]) } : undefined
  return { states: Number(states), depth: Number(depth), failure }
}

/** What a claim of the model says, in words. */
function claimOf(text) {
  if (text.includes('admitted<=')) return 'more is admitted than the limit and its allowances'
  if (text.includes('link[')) return 'a process does not return to the store'
  return text.includes('count[') ? 'the store counts more than was admitted' : text
}

function run(command, args, { cwd }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    child.stdout.on('data', bytes => {
      text += bytes
    })
    child.stderr.on('data', bytes => {
      text += bytes
    })
    child.once('error', reject)
    child.once('close', code => {
      if (code === 0) resolve(text)
      else reject(new Error(`${command} ${args.join(' ')} failed:\n${text}`))
    })
  })
}
