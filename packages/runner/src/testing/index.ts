export { ACTIVATE, MemoryFacts, PREPARE, readingAs, seatFixture, type SeatFixture } from "./seat-fixture.ts";
export { draftOf } from "./seeded-drafts.ts";
