import { setTimeout as pause } from 'node:timers/promises'
import { moment } from './fleet/clock.mjs'
import { startFleet } from './fleet/fleet.mjs'
import { findings, isDisturbed, judge } from './judge.mjs'
import { pace } from './rules.mjs'

const AFTER_MS = 3000

/**
 * Lets fleets live through one fault, one after the other, and tells of the worst. A run that misses a mark while the machine was
 * busy is made again, up to `tries` times; unless the machine is busy on purpose, where how long things take is not judged.
 */
export async function measure(fault, { tries, runs, isBusy }) {
  const results = []
  for (let run = 0; run < runs; run++) results.push(await measureOnce(fault, { tries, isBusy }))
  const worst = results.toSorted((a, b) => b.missed.length - a.missed.length || b.over - a.over)[0]
  const most = key => Math.max(...results.map(result => result[key] ?? 0))
  return {
    ...worst,
    ...{ p999Ms: most('p999Ms'), lagMs: most('lagMs'), under: most('under'), failed: most('failed') },
    noticeMs: worst.noticeMs === undefined ? undefined : most('noticeMs'),
    recoverMs: worst.recoverMs === undefined ? undefined : most('recoverMs'),
    calls: results.reduce((sum, { calls }) => sum + calls, 0),
    traced: results.reduce((sum, { traced }) => sum + traced, 0),
    runs,
    runsOver: results.filter(({ over }) => over > 0).length,
    runsMissed: results.filter(({ missed }) => missed.length > 0).length,
    worstOver: worstOverOf(results),
  }
}

/** By how many calls each rule was over in the worst of its runs. */
function worstOverOf(results) {
  const worst = {}
  for (const { id, over } of results.flatMap(({ overs }) => overs)) worst[id] = Math.max(worst[id] ?? 0, over)
  return worst
}

async function measureOnce(fault, { tries, isBusy }) {
  const judgesTimes = !isBusy && !fault.isStalling
  for (let tried = 1; ; tried++) {
    const result = await liveThrough(fault)
    const missed = findings(result, { judgesTimes })
    if (missed.length === 0 || isBusy || !isDisturbed(result) || tried >= tries) return { ...result, missed, tried }
  }
}

async function liveThrough(fault) {
  const scene = await fault.scene()
  const { processes, beforeMs, callersMove, allowance } = fault
  let fleet
  try {
    if (fault.isDownAtStart) await scene.proxy.shut()
    const job = { beforeMs, callersMove, pace: fault.hasPace ? pace : undefined }
    const jobOf = index => ({ ...job, limiter: scene.limiterOf?.(index) ?? scene.limiter })
    fleet = await startFleet({ processes, jobOf, shiftMs: fault.shiftMs })
    await pause(beforeMs)
    const startedAt = moment()
    const { deafSince, beganAt = startedAt } = (await fault.begin({ ...scene, fleet })) ?? {}
    await pause(fault.lastsMs)
    await fault.end({ ...scene, fleet })
    const endedAt = moment()
    await pause(AFTER_MS)
    const reports = await fleet.stop()
    return { name: fault.name, ...judge(reports, { deafSince, beganAt, endedAt, processes, allowance }) }
  } finally {
    fleet?.end()
    await scene.close()
  }
}
