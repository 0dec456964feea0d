import { setTimeout as pause } from 'node:timers/promises'
import { moment } from './clock.mjs'
import { startFleet } from './fleet.mjs'
import { findings, isDisturbed, judge } from './judge.mjs'
import { offers, pace } from './rules.mjs'

const PROCESSES = 3
const BEFORE_MS = 1700
const AFTER_MS = 3000
/**
 * Lets a fleet live through one fault, and tells what became of its calls. If it missed a mark while the machine was busy,
 * it is tried again, up to `tries` times; else never.
 */
export async function measure(fault, tries) {
  for (let tried = 1; ; tried++) {
    const result = await liveThrough(fault)
    const missed = findings(result)
    if (missed.length === 0 || !isDisturbed(result) || tried >= tries) return { ...result, missed, tried }
  }
}

async function liveThrough(fault) {
  const scene = await fault.scene()
  let fleet
  try {
    if (fault.isDownAtStart) await scene.proxy.shut()
    const job = { limiter: scene.limiter, offers, pace: fault.hasPace ? pace : undefined }
    fleet = await startFleet({ processes: PROCESSES, job, shiftMs: fault.shiftMs })
    await pause(BEFORE_MS)
    const startedAt = moment()
    const { deafSince, beganAt = startedAt } = (await fault.begin(scene)) ?? {}
    await pause(fault.lastsMs)
    await fault.end(scene)
    const endedAt = moment()
    await pause(AFTER_MS)
    return { name: fault.name, ...judge(await fleet.stop(), { deafSince, beganAt, endedAt, processes: PROCESSES }) }
  } finally {
    fleet?.end()
    await scene.close()
  }
}
