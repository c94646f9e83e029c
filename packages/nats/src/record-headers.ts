/** Whether a record has something to do, readable without its payload. */
export const WORK_HEADER = "Hf-Work";
/** Whether a record without work waits for something from elsewhere. */
export const WAITS_HEADER = "Hf-Waits";
/** Whether its actor has ended: `record`, `erase` when what it held is to go soon, or `tombstone`. */
export const ENDED_HEADER = "Hf-Ended";
