/**
 * What is proved. A scene is the model with some faults, and all runs of it are looked at; a mutant puts one fault of the protocol back
 * that was once found, and must be found again. `isShort` ones belong to `npm test`.
 */
export const scenes = [
  { name: 'outages', flags: { SILENT: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'late answers and an outage', flags: { SILENT: 1, LATE: 1 }, sizes: [2, 3] },
  { name: 'a lost answer to a report', flags: { SILENT: 1, LOST_ANSWER: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'lost counts, twice', flags: { EMPTY: 1, FAULTS: 2 }, sizes: [2, 3], isShort: true },
  { name: 'an outage and lost counts', flags: { EMPTY: 1, SILENT: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'one process cut off, and an outage', flags: { CUT: 1, SILENT: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'a process is killed, and an outage', flags: { DIES: 1, SILENT: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'a process joins, and an outage', flags: { JOINS: 1, SILENT: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'two versions of a rule, and outages', flags: { VERSIONS: 2, LIMIT_B: 3, SILENT: 1, FAULTS: 2 }, sizes: [2] },
  { name: 'leases and an outage', flags: { LEASE: 1, SILENT: 1 }, sizes: [2, 3] },
  { name: 'leases and lost counts', flags: { LEASE: 1, EMPTY: 1 }, sizes: [2, 3], isShort: true },
  { name: 'leases and a clock that steps', flags: { LEASE: 1, CLOCK: 1 }, sizes: [2, 3] },
  { name: 'a replica that missed writes', flags: { FAILOVER: 1 }, sizes: [2, 3], isShort: true },
  { name: 'a bucket and an outage', flags: { TICKS: 2, SILENT: 1 }, sizes: [2] },
  { name: 'a leased bucket and an outage', flags: bucket({ SILENT: 1 }), sizes: [2] },
  { name: 'a leased bucket and lost counts', flags: bucket({ EMPTY: 1 }), sizes: [2] },
]

export const mutants = [
  { name: 'LATE_ANSWER_AT_START', flags: { LATE: 1, FAULTS: 0 }, isShort: true },
  { name: 'LATE_COUNT_KEPT', flags: { LATE: 1, FAULTS: 0 }, isShort: true },
  { name: 'EMPTY_RESTART_REPORTED_TWICE', flags: { EMPTY: 1, FAULTS: 2 }, isShort: true },
  { name: 'ASKED_WHILE_GATHERING', flags: { EMPTY: 1, FAULTS: 2 } },
  { name: 'RETURN_BEFORE_OTHERS', flags: { SILENT: 1 } },
  { name: 'VERSIONS_SIDE_BY_SIDE', flags: { VERSIONS: 2, LIMIT_B: 3, SILENT: 1 }, isShort: true },
  { name: 'SHARE_TAKEN_EARLY', flags: { JOINS: 1, SILENT: 1, FAULTS: 2, MARGIN: 0 } },
  { name: 'LEASE_KEPT_OVER_FLUSH', flags: bucket({ EMPTY: 1 }) },
  { name: 'LEASE_BESIDE_SHARE', flags: bucket({ SILENT: 1 }) },
]

/** Of a bucket so small the margin of a share would be all of it. */
function bucket(faults) {
  return { TICKS: 2, LEASE: 1, MARGIN: 0, LIMIT: 2, CALLS: 4, ...faults }
}

/**
 * Three processes have a smaller limit and make fewer calls, or there would be too many states; the margin of a share would be all of it.
 */
export function flagsOf({ flags }, processes) {
  if (processes === 2) return { PROCESSES: 2, LIMIT: 4, CALLS: 5, ...flags }
  const bounds = flags.FAULTS > 1 ? { LIMIT: 2, CALLS: 3 } : { LIMIT: 3, CALLS: 4 }
  return { PROCESSES: 3, ...bounds, MARGIN: 0, ...flags }
}
